// The theme makes a navigation landmark of each copy button, and takes the keyboard away from blocks of code that scroll.
const mend = () => {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "none");
  for (const code of document.querySelectorAll("pre > code:not([tabindex])")) code.setAttribute("tabindex", "0");
};
new MutationObserver(mend).observe(document.documentElement, {
  attributeFilter: ["tabindex"], childList: true, subtree: true,
});
