// The theme makes each copy button a navigation landmark, and the keyboard does not reach code and tables that scroll.
const mend = () => {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "none");
  const scrolls = document.querySelectorAll("pre > code:not([tabindex]), .md-typeset__scrollwrap:not([tabindex])");
  for (const box of scrolls) box.setAttribute("tabindex", "0");
};
new MutationObserver(mend).observe(document.documentElement, {
  attributeFilter: ["tabindex"], childList: true, subtree: true,
});
