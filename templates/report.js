// Comfort only: the page says everything without this script.
(() => {
  "use strict";
  const unfold = (target) => {
    for (let node = target; node; node = node.parentElement) {
      if (node.tagName === "DETAILS") node.open = true;
    }
  };
  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    unfold(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  for (const block of document.querySelectorAll("pre.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy the command");
    button.addEventListener("click", async () => {
      const code = block.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // A page opened from a file may not reach the clipboard: select it, so that one key copies it.
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
    block.append(button);
  }

  const all = [...document.querySelectorAll("main details")];
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("main details.exhibit:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });

  const contents = document.querySelector("nav.contents");
  if (contents && all.length) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "unfold";
    let open = false;
    button.textContent = "Unfold all";
    button.addEventListener("click", () => {
      open = !open;
      for (const fold of all) fold.open = open;
      button.textContent = open ? "Fold all" : "Unfold all";
    });
    contents.append(button);
  }

  const items = [...document.querySelectorAll("nav.contents li")];
  const marks = items.map((item) => document.getElementById(item.firstElementChild.hash.slice(1)));
  const here = () => {
    let at = 0;
    marks.forEach((mark, index) => { if (mark && mark.getBoundingClientRect().top < 140) at = index; });
    items.forEach((item, index) => item.classList.toggle("here", index === at));
  };
  addEventListener("scroll", here, { passive: true });
  here();
})();
