async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
(async () => {
  const [script, data] = await Promise.all([unpacked("script"), unpacked("data")]);
  const element = document.createElement("script");
  element.textContent = script;
  document.body.append(element);
  kemuPage.start(JSON.parse(data));
})();
