// Looks at the page that it runs in and gives what is wrong with it, as a list of sentences. `charts` is how many there must be,
// `paper` whether the page is seen as printed.
((charts, paper) => {
  const problems = [];
  const say = (kind, what) => problems.push(kind + ": " + what);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const box = (element) => element.getBoundingClientRect();
  const inside = (inner, outer) =>
    inner.left >= outer.left - 1 && inner.right <= outer.right + 1 && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const name = (element) => element.tagName.toLowerCase() + " '" + element.textContent.trim().slice(0, 60) + "'";
  const visible = (element) => element.checkVisibility() && box(element).width > 0;

  // Charts: there, drawn, named, with their data.
  const figures = all("figure.chart");
  if (figures.length !== charts) say("charts", figures.length + " instead of " + charts);
  for (const figure of figures) {
    const svg = figure.querySelector("svg");
    const title = figure.querySelector("figcaption").textContent;
    const frame = box(svg);
    if (frame.width < 200 || frame.height < 40) say("chart is not shown", title);
    if (svg.getAttribute("role") !== "img" || !svg.getAttribute("aria-label")) say("chart has no name", title);
    if (all("tbody td", figure).length === 0) say("chart has no data", title);
    const marks = all(".mark, .bar, .dot", svg);
    if (marks.length === 0) say("chart is empty", title);
    for (const mark of marks) {
      if (!inside(box(mark), frame)) say("mark is outside its chart", title);
      if (!mark.parentElement.querySelector("title")) say("mark has no tooltip", title);
    }
    // Letters do not fill their boxes up and down, so boxes may touch there.
    const texts = all("text", svg).map((text) => ({ text, box: box(text) }));
    for (const [index, one] of texts.entries()) {
      if (!inside(one.box, frame)) say("text leaves its chart", title + ": " + one.text.textContent);
      for (const other of texts.slice(index + 1)) {
        const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
        const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
        if (across > 1 && down > one.box.height * 0.25) say("texts overlap", title + ": " + one.text.textContent + " / " + other.text.textContent);
      }
      for (const mark of all(".bar", svg)) {
        const bar = box(mark);
        const across = Math.min(one.box.right, bar.right) - Math.max(one.box.left, bar.left);
        const down = Math.min(one.box.bottom, bar.bottom) - Math.max(one.box.top, bar.top);
        if (across > 1 && down > one.box.height * 0.35) say("text lies on a bar", title + ": " + one.text.textContent);
      }
    }
    if (paper) {
      if (getComputedStyle(figure).breakInside !== "avoid") say("chart may be cut", title);
      // A4 without its margins, at 96 dots for an inch.
      if (box(figure).height > 1000) say("chart is longer than a sheet", title);
    }
  }

  // Boxes: nothing wider than what it is in; only tables may scroll, and not on paper.
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) say("page scrolls sideways", root.scrollWidth + " > " + root.clientWidth);
  for (const element of all("body *:not(svg, svg *)")) {
    if (!visible(element) || getComputedStyle(element).display.startsWith("inline")) continue;
    const scrolls = element.classList.contains("wide") && !paper;
    if (!scrolls && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) say("text leaves its box", name(element));
  }

  // Contrast: of text 4.5, of marks 3.
  const parse = (colour) => {
    const parts = colour.match(/^rgba?\(([^)]*)\)$/);
    if (!parts) return null;
    const [red, green, blue, alpha = 1] = parts[1].split(/[ ,/]+/).map(Number);
    return { channels: [red, green, blue], alpha };
  };
  const over = (top, below) => top.channels.map((channel, index) => channel * top.alpha + below[index] * (1 - top.alpha));
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor) ?? { channels: [0, 0, 0], alpha: 0 });
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const brightness = (channels) => {
    const [red, green, blue] = channels.map((channel) => channel / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (colour, below) => {
    const [one, other] = [brightness(over(colour, below)), brightness(below)];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  };
  const check = (element, colours, least) => {
    const below = background(element);
    const best = Math.max(...colours.map(parse).map((colour) => (colour ? contrast(colour, below) : 0)));
    if (!(best >= least)) say("contrast", name(element) + " " + best.toFixed(2) + " in " + colours.join(" / "));
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const checked = new Set();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || checked.has(element) || !visible(element) || element.closest("title")) continue;
    checked.add(element);
    const style = getComputedStyle(element);
    check(element, [element.closest("svg") ? style.fill : style.color], 4.5);
  }
  if (checked.size < 20) say("text", "only " + checked.size + " pieces of text are visible");
  for (const mark of all(".chart .mark, .chart .bar, .chart .dot, .chart .line, .chart .whisker")) {
    const style = getComputedStyle(mark);
    check(mark, [style.fill, style.stroke].filter((colour) => colour.startsWith("rgb")), 3);
  }

  // Self-contained: nothing that runs, nothing that is elsewhere.
  for (const element of all("script, link, img, iframe, object, embed, base, form")) say("foreign element", element.outerHTML.slice(0, 80));
  for (const element of all("*")) {
    for (const attribute of element.attributes) {
      if (/^on/i.test(attribute.name)) say("handler", element.outerHTML.slice(0, 80));
      if (/^(src|href|xlink:href|action|srcset)$/i.test(attribute.name)) say("reference", attribute.value);
    }
  }
  for (const region of all(".wide")) if (!region.hasAttribute("aria-label") || region.tabIndex !== 0) say("table cannot be scrolled by keys", name(region));
  return [...new Set(problems)];
})
