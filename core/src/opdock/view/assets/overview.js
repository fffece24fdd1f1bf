// What is worth a look, before anything is chosen: answers to what one asks of a program first.
function overviewOf(app, program) {
  const { running, view } = program;
  const elsewhere = running.filter(isElsewhere);
  const copies = running.filter((n) => n.how === "copy");
  const fused = running.filter((n) => n.members.length);
  const removed = program.nodes.filter((n) => n.how === "removed");
  const missed = running.filter((n) => (n.row.missed || []).length);
  const refused = running.filter((n) => (n.row.rejections || []).length);
  const line = (n, text) => weighed(app, program, n, text);
  return [
    h("div", { class: "kicker" }, "program"),
    h("h2", { class: "name" }, program.title),
    h("div", { class: "chips" }, chip(`${count(running.length, "op")} run`),
      program.traced ? chip(`${micros(program.total)} in ops`) : null,
      view.planned_bytes ? chip(`${size(view.planned_bytes)} planned`) : null,
      fused.length ? chip(`${count(fused.reduce((s, n) => s + n.members.length, 0), "op")} fused into ${fused.length}`) : null,
      copies.length ? chip(count(copies.length, "copy", "copies")) : null,
      removed.length ? chip(`${count(removed.length, "op")} removed`) : null),
    listed("Not where they were asked to be", elsewhere, (n) => [
      nodeLink(app, program, n), h("span", { class: "faint" },
        ` ${shortDevice(n.requested)} → ${shortDevice(n.device)}`)]),
    ...(view.notes || []).map(([head, text]) => part(shortDevice(head), h("p", { class: "note" }, tidy(text)))),
    ...breakdown(app, program, running),
    listed("Slowest", mostOf(running, (n) => n.us || 0), (n) => line(n, micros(n.us))),
    listed("Largest in memory", mostOf(running, (n) => n.bytes), (n) => line(n, size(n.bytes))),
    listed("Copies", copies, (n) => [nodeLink(app, program, n), h("span", { class: "faint" }, ` ${n.row.kernel || ""}`)]),
    listed("Fused", fused, (n) => [nodeLink(app, program, n),
      h("span", { class: "faint" }, ` ${n.row.fusion}: ${n.members.map((m) => m.op).join(", ")}`)]),
    listed("Fusions that were not applied", missed, (n) => [nodeLink(app, program, n),
      h("span", { class: "faint" }, ` ${tidy(n.row.missed[0])}`)]),
    listed("Kernels that were turned down", refused, (n) => [nodeLink(app, program, n),
      h("span", { class: "faint" }, ` ${tidy(n.row.rejections[0])}`)]),
  ];
}
