// Looks at a picture of a page, PNG in base64: which of the boxes in it are of one colour only, and how many colours there are.
(async (picture, boxes) => {
  const bytes = Uint8Array.from(atob(picture), (letter) => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
  const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const colours = (x, y, width, height) => {
    const pixels = new Uint32Array(context.getImageData(x, y, Math.max(1, width), Math.max(1, height)).data.buffer);
    const counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    return { kinds: counts.size, drawn: 1 - Math.max(...counts.values()) / pixels.length };
  };
  const problems = [];
  const whole = colours(0, 0, bitmap.width, bitmap.height);
  if (whole.kinds < 16) problems.push("the page has " + whole.kinds + " colours only");
  for (const [index, [x, y, width, height]] of boxes.entries()) {
    if (y + height > bitmap.height || x + width > bitmap.width) problems.push("box " + index + " is not in the picture");
    else if (colours(x, y, width, height).drawn < 0.01) problems.push("box " + index + " is blank");
  }
  return problems;
})
