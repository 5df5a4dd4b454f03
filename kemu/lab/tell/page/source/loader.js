async function unpacked(id) {
  const text = document.getElementById(id).textContent;
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let index = 0; index < letters.length; index++) bytes[index] = letters.charCodeAt(index);
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
