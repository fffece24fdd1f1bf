// All that is known of what was chosen.
function detailsOf(app, program, node) {
  const { row } = node;
  const link = (other, text) => nodeLink(app, program, other, text);
  const parts = [
    h("div", { class: "kicker" }, opName(node)),
    h("h2", { class: "name" }, node.name),
    h("div", { class: "chips" },
      node.device ? chip(shortDevice(node.device), app.colors.device(node.device)) : null,
      node.how ? chip(node.how, app.colors.how(node.how)) : null,
      node.us === null ? null
        : chip(`${micros(node.us)} · ${percent(node.us, program.total)} of the step`),
      node.bytes ? chip(size(node.bytes)) : null),
  ];
  if (isElsewhere(node)) {
    const reasons = new Set(node.members.filter(isElsewhere).map((m) => m.row.why).filter(Boolean));
    parts.push(h("div", { class: "warning" },
      h("p", {}, `Asked for ${shortDevice(node.requested)}, runs on ${shortDevice(node.device)}.`),
      [...reasons].slice(0, 3).map((why) => h("p", {}, tidy(why)))));
  }
  if (node.into) {
    parts.push(part("Fused into", h("p", {}, link(node.into, node.into.name),
      ` by ${row.fusion === "cluster" ? "clustering" : `fusion '${row.fusion}'`}`)));
  }
  if (row.why) parts.push(part(node.how === "removed" ? "Why it was removed" : "Why here", h("p", {}, tidy(row.why))));
  parts.push(facts([
    ["Runs in", row.within], ["Device asked for", row.requested], ["Device", row.device], ["Kernel", row.kernel],
    ["Plugin", row.plugin], ["Computed by", (row.means || []).join("; ")],
    ["Results", (row.outputs || []).join(", ")], ["Made in", row.line],
  ]));
  parts.push(listed("Why not elsewhere", row.rejections, tidy));
  parts.push(listed("Fusions that were not applied", row.missed, tidy));
  parts.push(listed("Stands for", node.members, (m) => [link(m), " ", h("span", { class: "faint" }, m.op)]));
  parts.push(listed("Memory", program.lives.filter((l) => l.node === node.name),
    (l) => `result ${l.output}: ${size(l.nbytes)}, ${l.kind}, steps ${l.begin} to ${l.end}`));
  parts.push(listed("Takes", node.ins, (e) => [link(e.from), e.control ? h("span", { class: "faint" }, " only waits") : ""]));
  parts.push(listed("Gives to", node.outs, (e) => [link(e.to), e.control ? h("span", { class: "faint" }, " only waits") : ""]));
  const twin = twinOf(app, program, node);
  if (twin) parts.push(part(`In ${twin.program.title}`, twinFacts(app, node, twin)));
  return parts;
}

// The node of the same name in the other program.
function twinOf(app, program, node) {
  const other = app.programs.find((p) => p !== program);
  const found = other && other.find(node.name);
  return found ? { program: other, node: found } : null;
}

function twinFacts(app, node, twin) {
  const other = twin.node;
  const time = node.us !== null && other.us !== null
    ? `${micros(other.us)} (here ${micros(node.us)})` : micros(other.us);
  return h("div", {}, h("p", {}, nodeLink(app, twin.program, other)),
    facts([["Device", shortDevice(other.device)], ["Kind", other.how],
      ["Kernel", other.row.kernel], ["Time", time], ["Why", tidy(other.row.why || "")]]));
}

function boxDetails(app, program, box) {
  const nodes = [];
  const walk = (b) => (b.node ? nodes.push(b.node) : b.children.forEach(walk));
  walk(box);
  return [
    h("div", { class: "kicker" }, box.kind === "part" ? "part of a scope" : "scope"),
    h("h2", { class: "name" }, box.label),
    h("div", { class: "chips" }, chip(count(nodes.length, "op")),
      box.us ? chip(`${micros(box.us)} · ${percent(box.us, program.total)} of the step`) : null,
      box.bytes ? chip(size(box.bytes)) : null),
    ...breakdown(app, program, nodes),
    listed("Slowest", mostOf(nodes, (n) => n.us || 0), (n) => weighed(app, program, n, micros(n.us))),
    listed("Largest", mostOf(nodes, (n) => n.bytes), (n) => weighed(app, program, n, size(n.bytes))),
    listed("Ops", nodes, (n) => [nodeLink(app, program, n), " ", h("span", { class: "faint" }, n.op)]),
  ];
}

function mostOf(nodes, weight, many = 8) {
  return [...nodes].filter((n) => weight(n) > 0).sort((a, b) => weight(b) - weight(a)).slice(0, many);
}

function weighed(app, program, node, text) {
  return h("span", { class: "weighed" }, h("span", { class: "weight" }, text), nodeLink(app, program, node));
}

function nodeLink(app, program, node, text) {
  return h("button", { class: "link", title: `${node.name} (${node.op})`, onclick: () => app.go(program, node) },
    text || node.name);
}

function chip(text, color) {
  return h("span", { class: "chip" }, color ? swatch(color) : null, text);
}

function part(title, ...inside) {
  return h("section", {}, h("h3", {}, title), ...inside);
}

function facts(pairs) {
  const said = pairs.filter(([, value]) => value);
  return said.length ? h("dl", {}, said.flatMap(([key, value]) => [h("dt", {}, key), h("dd", {}, value)])) : null;
}

const SHOWN = 25; // of a list, before one asks for more
function listed(title, items, line) {
  if (!items || !items.length) return null;
  const list = h("ul", {});
  const add = (from, to) => {
    for (const item of items.slice(from, to)) list.append(h("li", {}, line(item)));
  };
  add(0, SHOWN);
  const box = part(items.length > 3 ? `${title} (${grouped(items.length)})` : title, list);
  if (items.length > SHOWN) {
    const more = h("button", { class: "link more" }, `${items.length - SHOWN} more`);
    more.addEventListener("click", () => {
      add(SHOWN, SHOWN + 1000);
      more.remove();
    });
    box.append(more);
  }
  return box;
}

// How nodes divide by device and by kind.
function breakdown(app, program, nodes) {
  const devices = tally(nodes.filter((n) => n.device), (n) => shortDevice(n.device));
  const ways = tally(nodes.filter((n) => n.how), (n) => n.how);
  const lines = (pairs, color) => h("ul", { class: "bars" }, pairs.map(([name, number]) =>
    h("li", {}, h("span", { class: "bar-name" }, name), bar(number / nodes.length, color(name)),
      h("span", { class: "bar-number" }, grouped(number)))));
  return [
    devices.length ? part("By device", lines(devices, (d) => app.colors.device(d))) : null,
    ways.length ? part("By kernel kind", lines(ways, (w) => app.colors.how(w))) : null,
  ];
}
