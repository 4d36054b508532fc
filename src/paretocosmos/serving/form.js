"use strict";
// A form writes the body of a request and its curl line; sending it shows the answer.
for (const form of document.forms) {
  const body = form.querySelector("textarea");
  const curl = form.querySelector(".curl");
  const answer = form.querySelector("output");
  const weights = [...form.querySelectorAll("[data-weight]")];
  const cells = [...form.querySelectorAll("[data-column]")];

  const told = (cell) => {
    if (cell.value === "") return null;
    return cell.type === "number" ? Number(cell.value) : cell.value;
  };
  const write = () => {
    const given = weights.map((one) => Number(one.value));
    const total = given.reduce((a, b) => a + b, 0);
    const even = given.map(() => 1 / given.length);
    const ray = total > 0 ? given.map((one) => one / total) : even;
    weights.forEach((one, at) => {
      one.parentElement.querySelector("b").textContent = `${(100 * ray[at]).toFixed(0)} %`;
    });
    const content = JSON.parse(body.value);
    if (weights.length) content.preference = ray;
    if (cells.length) {
      content.inputs = Object.fromEntries(cells.map((cell) => [cell.dataset.column, told(cell)]));
    }
    body.value = JSON.stringify(content, null, 1);
    quote();
  };
  const quote = () => {
    let flat = body.value;
    try { flat = JSON.stringify(JSON.parse(flat)); } catch { /* said when it is sent */ }
    curl.textContent = curl.dataset.start + "'" + flat.replaceAll("'", "'\"'\"'") + "'";
  };
  for (const one of [...weights, ...cells]) one.addEventListener("input", write);
  body.addEventListener("input", quote);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    answer.textContent = "…";
    const started = performance.now();
    try {
      const said = await fetch(form.dataset.path, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: body.value,
      });
      const took = (performance.now() - started).toFixed(0);
      const content = JSON.stringify(await said.json(), null, 1);
      answer.textContent = `${said.status}, ${took} ms\n${content}`;
    } catch (error) {
      answer.textContent = `no answer: ${error.message}`;
    }
  });
}
