// ---- putting it together ----
const setTheme = (theme) => {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  readColours();
  changed("view");
};
const storage = (act) => { try { return act(localStorage); } catch { return null; } }; // forbidden to some files
recall();
readColours();
checkAll();
setUpCriteria();
setUpChart();
setUpPreference();
setUpCode();
setUpCase();
setUpOwn();
setUpExports();
setUpAbout();
setUpPins();
setUpRecord();
setUpHistory();
setUpLinks();
for (const radio of $("theme").querySelectorAll("input")) {
  radio.addEventListener("change", () => {
    storage((kept) => kept.setItem("paretocosmos-theme", radio.value));
    setTheme(radio.value);
  });
  if ((storage((kept) => kept.getItem("paretocosmos-theme")) ?? "") === radio.value) {
    radio.checked = true;
    setTheme(radio.value);
  }
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); changed("view"); });
due = new Set(KINDS);
refresh();
