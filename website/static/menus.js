// A menu over the page opens and shuts without a script. It also shuts when the reader has chosen
// from it, goes on elsewhere, or presses Escape.
(() => {
  const open = () => document.querySelector("details.dropdown[open]");
  const shut = ({ target }) => {
    const menu = open();
    if (menu && (!menu.contains(target) || target.closest(".dropdown-item"))) menu.open = false;
  };
  document.addEventListener("click", shut);
  document.addEventListener("focusin", shut);
  document.addEventListener("keydown", ({ key }) => {
    const menu = open();
    if (key !== "Escape" || !menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
})();
