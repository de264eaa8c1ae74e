"""From a path to members: directories, files, archives and those inside each other, as streams, nothing extracted."""
