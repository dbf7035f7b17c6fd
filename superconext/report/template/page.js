"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const { classes, rows, train } = JSON.parse($("data").textContent);
  const colours = JSON.parse($("colours").textContent);
  const root = document.documentElement;

  // Elements are made with text, never with markup: the sentences are other people's.
  const make = (name, attributes = {}, ...inside) => {
    const svg = ["svg", "path"].includes(name);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  };
  const SHAPES = [ // each fits a circle of radius 1
    (r) => `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z`,
    (r) => `M0 ${-1.2 * r}L${1.1 * r} ${0.8 * r}H${-1.1 * r}Z`,
    (r) => `M${-0.9 * r} ${-0.9 * r}H${0.9 * r}V${0.9 * r}H${-0.9 * r}Z`,
    (r) => `M0 ${-1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${-1.3 * r} 0Z`,
    (r) => `M0 ${1.2 * r}L${1.1 * r} ${-0.8 * r}H${-1.1 * r}Z`,
  ];
  const shape = (k, r) => SHAPES[k < 0 ? 0 : k % SHAPES.length](r);
  const colour = (k) => getComputedStyle(root).getPropertyValue(`--c${k < 0 ? 7 : colours[k] % 8}`).trim();
  const percent = (share) => `${(share < 1 ? Math.min(share * 100, 99.9) : 100).toFixed(share >= 0.995 || share < 0.1 ? 1 : 0)}%`;
  const tag = (k, more = "") => {
    const icon = make("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }, make("path", { d: shape(k, 5), fill: colour(k) }));
    return make("span", { class: "tag" }, icon, make("bdi", {}, k < 0 ? "another class" : classes[k]), more);
  };
  // By most of its letters: by the first alone, as dir=auto has it, "@user" would turn a sentence round.
  const direction = (text) => {
    const words = text.replace(/[@#]\S+|https?:\S+/g, "");
    const right = (words.match(/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/g) || []).length;
    return right * 2 > (words.match(/\p{L}/gu) || []).length ? "rtl" : right ? "ltr" : "auto";
  };
  const sentence = (text, ...inside) => make("bdi", { dir: direction(text), class: "sentence" }, ...(inside.length ? inside : [text]));
  for (const one of document.querySelectorAll("#suspects .sentence")) one.dir = direction(one.textContent);

  const dark = matchMedia("(prefers-color-scheme: dark)");
  $("theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    legend();
    draw();
    list();
  });
  for (const media of [dark, matchMedia("print")]) media.addEventListener("change", () => { view = null; legend(); draw(); list(); });
  if (!$("rows")) return;

  // What is listed
  const count = rows.label.length;
  const wrong = (i) => rows.label[i] !== rows.guess[i];
  const plain = rows.text.map((text) => text.toLowerCase());
  const filters = new Map(); // name -> [what it says, test of a row]
  let listed = [], shown = 50, chosen = -1, open = -1;
  const setFilter = (name, says, test) => { if (test) filters.set(name, [says, test]); else filters.delete(name); filter(); };

  function filter() {
    const wanted = $("search").value.toLowerCase().trim();
    const tests = [...filters.values()].map(([, test]) => test);
    if (wanted) tests.push((i) => plain[i].includes(wanted));
    if ($("wrong").checked) tests.push(wrong);
    listed = [...Array(count).keys()].filter((i) => tests.every((test) => test(i)));
    const by = { sure: (i) => -rows.sure[i], unsure: (i) => rows.sure[i], line: (i) => rows.line[i] }[$("order").value];
    listed.sort((a, b) => by(a) - by(b));
    shown = 50;
    fit();
    list();
    draw();
  }
  // A sentence with its words marked: those that speak for the prediction, and those against it.
  function marked(i) {
    const text = [...rows.text[i]], words = $("words") && $("words").checked ? rows.words[i] : [];
    const most = Math.max(0.5, ...words.map(([, , value]) => Math.abs(value)));
    let end = 0;
    const inside = words.flatMap(([first, last, value]) => {
      const strength = Math.ceil((Math.abs(value) / most) * 4) - 1, word = part(text, first, last), gap = part(text, end, first);
      end = last;
      return [gap, strength < 1 ? word : make("mark", { class: `${value > 0 ? "for" : "against"} s${strength}`, title: signed(value) }, word)];
    });
    return sentence(rows.text[i], ...inside, part(text, end));
  }
  const part = (letters, first, last) => letters.slice(first, last).join(""); // an emoji is one letter, as in Python
  const signed = (value) => `${value > 0 ? "+" : "\u2212"}${Math.abs(value).toFixed(2)}`;
  // What is known of a sentence beside its text: probabilities, strongest words, nearest training sentences.
  function about(i) {
    const chances = (rows.top ? rows.top[i] : [[rows.guess[i], rows.sure[i]]]).map(([k, p]) => {
      const bar = make("span", { class: "chance" });
      bar.style.width = `${p * 6}rem`;
      bar.style.background = colour(k);
      return make("div", { class: "chances" }, tag(k), bar, percent(p));
    });
    const words = (rows.words ? rows.words[i] : []).slice().sort((a, b) => Math.abs(b[2]) - Math.abs(a[2])).slice(0, 6);
    const strongest = words.length ? [make("p", {}, make("span", { class: "muted" }, "words, log-odds: "), ...words.flatMap(([first, last, value], place) =>
      [place ? " · " : "", make("bdi", {}, part([...rows.text[i]], first, last)), ` ${signed(value)}`]))] : [];
    const near = rows.near ? [make("p", { class: "muted" }, "nearest training sentences (cosine)"), make("ol", {}, ...rows.near[i].map((n, place) =>
      make("li", {}, tag(train.label[n], ` ${rows.cosine[i][place].toFixed(2)}`), sentence(train.text[n]))))] : [];
    return [...chances, ...strongest, ...near];
  }
  function list() {
    $("count").textContent = `${listed.length} of ${count} sentences${$("wrong").checked ? ", mistakes only" : ""}.`;
    $("filters").replaceChildren(...[...filters].map(([name, [says]]) => {
      const chip = make("button", { type: "button", class: "chip" }, make("bdi", {}, says), " ×");
      chip.setAttribute("aria-label", `Remove the filter ${says}`);
      chip.addEventListener("click", () => setFilter(name));
      return chip;
    }));
    $("rows").tBodies[0].replaceChildren(...listed.slice(0, shown).map((i) => {
      const button = make("button", { type: "button", class: "open", "aria-expanded": i === open }, marked(i));
      const guess = make("td", wrong(i) ? { class: "miss" } : {}, tag(rows.guess[i]));
      const more = i === open ? [make("div", { class: "about" }, ...about(i))] : [];
      const row = make("tr", { "data-row": i, "aria-selected": i === chosen }, make("td", { class: "n" }, String(rows.line[i])),
        make("td", {}, button, ...more), make("td", {}, tag(rows.label[i])), guess, make("td", { class: "n" }, percent(rows.sure[i])));
      row.addEventListener("click", () => {
        if (getSelection().toString()) return; // someone copies the sentence
        open = i === open ? -1 : i;
        choose(i);
        list();
        $("rows").querySelector(`[data-row="${i}"] .open`).focus({ preventScroll: true });
      });
      return row;
    }));
    $("more").hidden = listed.length <= shown;
    if (!listed.length) $("rows").tBodies[0].append(make("tr", {}, make("td", { colspan: 5 }, "No sentence is like that.")));
  }
  $("more").addEventListener("click", () => { shown += 200; list(); });
  if ($("words")) $("words").addEventListener("change", list);
  // A row of the table is opened from elsewhere: filters that hide it are taken away.
  function reveal(i) {
    open = i;
    if (!listed.includes(i)) { clear(); $("wrong").checked = false; filter(); }
    shown = Math.max(shown, listed.indexOf(i) + 1);
    list();
    const button = $("rows").querySelector(`[data-row="${i}"] .open`);
    button.focus({ preventScroll: true });
    button.scrollIntoView({ block: "center" });
  }
  function clear() {
    filters.clear();
    $("search").value = "";
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) { event.preventDefault(); $("search").focus(); }
    if (event.key === "Escape") { clear(); filter(); }
  });
  for (const [id, event] of [["search", "input"], ["wrong", "change"], ["order", "change"]]) $(id).addEventListener(event, filter);
  const show = (correct) => { if (correct) $("wrong").checked = false; filter(); $("sentences").scrollIntoView(); };
  for (const button of document.querySelectorAll("[data-cell]")) button.addEventListener("click", () => {
    const [i, j] = button.dataset.cell.split(",").map(Number);
    filters.set("cell", [`${classes[i]} taken for ${classes[j]}`, (row) => rows.label[row] === i && rows.guess[row] === j]);
    show(i === j);
  });
  for (const button of document.querySelectorAll("[data-slice]")) button.addEventListener("click", () => {
    const [key, number, ...name] = button.dataset.slice.split(",");
    filters.set(key, [`${key}: ${name.join(",")}`, (row) => rows[key][row] === Number(number)]);
    show(false);
  });
  for (const button of document.querySelectorAll("[data-search]")) button.addEventListener("click", () => {
    $("search").value = button.dataset.search;
    show(true);
  });

  // The map
  const canvas = $("canvas"), hasMap = canvas && rows.x;
  let view = null, path = [], drawing = false, drawLegend = () => 0;
  function legend() { drawLegend(); }
  const points = () => ($("train") && $("train").checked ? count + train.x.length : count);
  const at = (i) => (i < count ? [rows.x[i], rows.y[i]] : [train.x[i - count], train.y[i - count]]);
  const onScreen = (i) => { const [x, y] = at(i); return [(x - view.x) * view.scale + view.left, (view.y - y) * view.scale + view.top]; };

  function fit() { // the view that shows all, or what is listed
    if (!hasMap) return;
    const some = $("zoom").checked && listed.length ? listed : [...Array(count).keys()];
    const ends = (values) => some.reduce(([low, high], i) => [Math.min(low, values[i]), Math.max(high, values[i])], [Infinity, -Infinity]);
    const [left, right] = ends(rows.x), [low, high] = ends(rows.y);
    // As tall as the points need at full width; the style bounds it.
    if (some.length === count) canvas.style.height = `${Math.max(240, (canvas.clientWidth - 30) * ((high - low) / (right - left || 1)) + 30)}px`;
    const scale = Math.min((canvas.clientWidth - 30) / (right - left || 1), (canvas.clientHeight - 30) / (high - low || 1));
    view = { x: (left + right) / 2, y: (low + high) / 2, scale, left: canvas.clientWidth / 2, top: canvas.clientHeight / 2 };
  }
  function draw() {
    if (!hasMap) return;
    if (!view) fit();
    const ratio = devicePixelRatio || 1, pen = canvas.getContext("2d"), style = getComputedStyle(root);
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const size = Math.max(2.2, Math.min(6, 0.2 * Math.sqrt((canvas.clientWidth * canvas.clientHeight) / count))), by = $("colour").value;
    const inList = new Set(listed), all = !filters.size && !$("search").value.trim();
    const marks = classes.map((_, k) => [new Path2D(shape(k, size)), colour(k)]);
    const another = [new Path2D(shape(-1, size)), colour(-1)], ink = style.getPropertyValue("--ink");
    const mark = (i, k, strength, hollow) => {
      const [path2d, fill] = marks[k] || another, [x, y] = onScreen(i);
      pen.save();
      pen.translate(x, y);
      pen.globalAlpha = strength;
      if (hollow) { pen.strokeStyle = fill; pen.stroke(path2d); } else { pen.fillStyle = fill; pen.fill(path2d); }
      if (i < count && wrong(i) && strength > 0.5) { pen.strokeStyle = ink; pen.lineWidth = 1.4; pen.stroke(path2d); }
      pen.restore();
    };
    for (let i = count; i < points(); i++) mark(i, train.label[i - count], 0.45, true);
    for (let i = 0; i < count; i++) if (!all && !inList.has(i)) mark(i, rows[by][i], 0.22);
    for (let i = 0; i < count; i++) if (all || inList.has(i)) mark(i, rows[by][i], 0.92);
    if (chosen >= 0) {
      const [x, y] = onScreen(chosen);
      pen.strokeStyle = ink;
      pen.lineWidth = 2.5;
      pen.beginPath();
      pen.arc(x, y, size + 6, 0, 7);
      pen.stroke();
      for (const j of (chosen < count && $("train") && $("train").checked && rows.near ? rows.near[chosen] : [])) {
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(x, y);
        pen.lineTo(...onScreen(count + j));
        pen.stroke();
      }
    }
    if (path.length) { pen.strokeStyle = ink; pen.lineWidth = 1.5; pen.setLineDash([5, 4]); pen.stroke(new Path2D("M" + path.map((p) => p.join(" ")).join("L"))); }
  }
  function choose(i) {
    if (i === chosen) return;
    chosen = i;
    for (const row of $("rows").tBodies[0].rows) row.setAttribute("aria-selected", row.dataset.row === String(i));
    draw();
    if (!$("card")) return;
    const j = i - count;
    if (j >= 0) {
      $("card").replaceChildren(make("p", { class: "muted" }, "a training sentence"), sentence(train.text[j]), make("p", {}, "label ", tag(train.label[j])));
      return;
    }
    $("card").replaceChildren(make("p", { class: "muted" }, `line ${rows.line[i]}`), marked(i), make("p", {}, "label ", tag(rows.label[i])),
      make("p", wrong(i) ? { class: "miss" } : {}, wrong(i) ? "a mistake: predicted" : "predicted"), ...about(i));
  }
  function closest(x, y, within, allowed = () => true) {
    let best = -1, least = within * within;
    for (let i = 0; i < points(); i++) {
      const [px, py] = onScreen(i), distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least && allowed(px - x, py - y, i)) { least = distance; best = i; }
    }
    return best;
  }
  function inside([x, y], corners) {
    let odd = false;
    corners.forEach(([ax, ay], k) => {
      const [bx, by] = corners[(k + 1) % corners.length];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
    });
    return odd;
  }
  if (hasMap) {
    const used = [...new Set(rows.label.concat(rows.guess))].sort((a, b) => a - b);
    drawLegend = () => $("legend").replaceChildren(...used.slice(0, 24).map((k) => tag(k)), used.length > 24 ? `and ${used.length - 24} more` : "");
    legend();
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" && !canvas.classList.contains("drawing")) return;
      drawing = true;
      path = [[event.offsetX, event.offsetY]];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (drawing) { path.push([event.offsetX, event.offsetY]); draw(); return; }
      const i = closest(event.offsetX, event.offsetY, 14);
      if (i >= 0) choose(i);
    });
    canvas.addEventListener("pointerup", (event) => {
      const corners = path, far = corners.some(([x, y]) => Math.hypot(x - corners[0][0], y - corners[0][1]) > 12);
      drawing = false;
      path = [];
      if (far) {
        const ringed = new Set([...Array(count).keys()].filter((i) => inside(onScreen(i), corners)));
        $("wrong").checked = false;
        setFilter("lasso", `${ringed.size} ringed on the map`, (i) => ringed.has(i));
        return;
      }
      const i = closest(event.offsetX, event.offsetY, 24);
      if (i >= 0) choose(i);
      draw();
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && chosen >= 0 && chosen < count) { event.preventDefault(); reveal(chosen); }
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!way) return;
      event.preventDefault();
      const [x, y] = chosen >= 0 ? onScreen(chosen) : [view.left, view.top];
      const i = closest(x, y, Infinity, (dx, dy, other) => {
        const along = dx * way[0] + dy * way[1];
        return other !== chosen && along > 0.5 && Math.abs(dx * way[1] + dy * way[0]) <= along;
      });
      if (i >= 0) choose(i);
    });
    $("lasso").addEventListener("click", () => $("lasso").setAttribute("aria-pressed", canvas.classList.toggle("drawing")));
    $("colour").addEventListener("change", draw);
    $("zoom").addEventListener("change", () => { fit(); draw(); });
    if ($("train")) $("train").addEventListener("change", draw);
    addEventListener("resize", () => { fit(); draw(); });
  }
  filter();
})();
