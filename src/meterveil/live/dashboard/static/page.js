"use strict";
const at = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const shown = (value, digits) => (value === null ? "–" : value.toFixed(digits));
const KEPT_S = 600, DAY_S = 86400;
let token = "", nonce = "", mode = "";

function chart(id, height, spanS) {
  const axis = {stroke: style("--soft"), grid: {stroke: style("--line"), width: 1}, ticks: {stroke: style("--line")}};
  const line = (label, colour, scale, width) => ({label, stroke: style(colour), scale, width, spanGaps: false});
  const options = {
    width: at(id).clientWidth, height,
    scales: {x: {time: true, range: (u, low, high) => [(high ?? Date.now() / 1000) - spanS, high ?? Date.now() / 1000]}, W: {range: (u, low, high) => [Math.min(low, 0), Math.max(high * 1.05, 100)]}, "%": {range: [0, 100]}},
    axes: [axis, {...axis, scale: "W", size: 56, label: "W", labelSize: 16}, {...axis, scale: "%", side: 1, size: 40, grid: {show: false}}],
    series: [{}, line("true load", "--load", "W", 1.5), line("meter", "--meter", "W", 2), line("charged %", "--soc", "%", 1)],
  };
  const plot = new uPlot(options, [[], [], [], []], at(id));
  new ResizeObserver(() => plot.setSize({width: at(id).clientWidth, height})).observe(at(id));
  return plot;
}

const seconds = chart("seconds", 240, KEPT_S), minutes = chart("minutes", 260, DAY_S);
const recent = [[], [], [], []];

function listed(id, rows) {
  at(id).replaceChildren(...rows.map(([text, bad, time]) => {
    const item = document.createElement("li");
    if (time) {
      const stamp = document.createElement("time");
      stamp.textContent = new Date(time * 1000).toLocaleTimeString() + " ";
      item.append(stamp);
    }
    item.append(text);
    item.className = bad ? "bad" : "";
    return item;
  }));
}

function table(id, rows) {
  at(id).replaceChildren(...rows.map((cells, row) => {
    const line = document.createElement("tr");
    line.append(...cells.map((text, column) => {
      const cell = document.createElement(row === 0 || column === 0 ? "th" : "td");
      cell.textContent = text;
      return cell;
    }));
    return line;
  }));
}

function show(state) {
  mode = state.mode;
  at("mode").textContent = state.mode;
  at("mode").className = "badge " + state.mode;
  at("control").textContent = state.in_control ? "in control of the battery" : "the battery is in its own mode";
  at("fault").textContent = state.fault_text;
  at("fault").hidden = !state.fault_text;
  at("load").textContent = shown(state.load_w, 0);
  at("meter").textContent = shown(state.meter_w, 0);
  at("battery").textContent = shown(state.battery_w, 0);
  at("soc").textContent = shown(state.soc === null ? null : 100 * state.soc, 0);
  at("moved").textContent = shown(state.moved_kwh, 2);
  at("budget").textContent = "of " + shown(state.budget_kwh, 1) + " kWh moved today";
  at("cost").textContent = shown(state.cost_today, 2);
  at("month").textContent = "cost today; " + shown(state.cost_month, 2) + " this month";
  at("certificate").textContent = state.certificate_bits === null ? "–" : Math.ceil(state.certificate_bits).toLocaleString();
  at("reader").textContent = "bits told today at most, to a reader of " + state.reader;
  table("certificates", [["reader of", "bits"], ...state.certificates.map(([name, bits]) => [name, Math.ceil(bits).toLocaleString()])]);
  at("stranger").hidden = state.found.length === 0;
  table("found", [["uses", "without", "with", "both"], ...state.found]);
  at("why").textContent = state.why;
  at("pause").textContent = state.mode === "paused" ? "Resume" : "Pause";
  at("arm").hidden = !state.may_command || state.mode === "live";
  listed("connections", state.connections.map((c) => [c.name + ": " + c.text, !c.ok]));
  listed("events", state.events.map((e) => [e[1] + ": " + e[2], false, e[0]]));
  const values = [state.utc_s, state.load_w, state.meter_w, state.soc === null ? null : 100 * state.soc];
  if (!(state.utc_s <= recent[0].at(-1))) values.forEach((value, n) => recent[n].push(value));
  while (recent[0].length && recent[0][0] < state.utc_s - KEPT_S) recent.forEach((part) => part.shift());
  seconds.setData(recent);
}

async function history(opened) {
  const reply = await fetch("/history");
  if (!reply.ok) return;
  const columns = await reply.json();
  token = columns.token;
  minutes.setData([columns.time, columns.load_w, columns.meter_w, columns.soc]);
  if (opened) columns.seconds.forEach((part, n) => { recent[n] = part; });
}

async function ask(what, value, confirm) {
  const reply = await fetch("/do", {method: "POST", headers: {"x-token": token}, body: JSON.stringify({what, value, confirm})});
  return reply.json();
}

at("pause").addEventListener("click", () => ask("protection", mode === "paused" ? "ON" : "OFF"));
at("arm").addEventListener("click", async () => {
  nonce = (await ask("mode", "live")).confirm || "";
  at("confirm").hidden = !nonce;
});
at("confirm").addEventListener("click", async () => {
  await ask("mode", "live", nonce);
  at("confirm").hidden = true;
});

function listen() {
  const events = new EventSource("/events");
  events.onmessage = (event) => show(JSON.parse(event.data));
  events.onerror = () => {
    at("mode").textContent = "no connection";
    at("mode").className = "badge";
  };
}

history(true).finally(listen);
setInterval(history, 60000);
