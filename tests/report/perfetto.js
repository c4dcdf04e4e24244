// node perfetto.js ASSETS FILE.json: Perfetto reads the trace without complaint, and shows every event as it is in the file.
//
// ASSETS is a folder of Perfetto's UI: trace_processor.wasm, and engine_bundle.js, the worker that runs it. Here node is the
// worker's browser, and talks to it as the UI does: in messages of Perfetto's trace_processor.proto.
"use strict";

const fs = require("fs");
const path = require("path");

// Messages are lists of [field, value]. A value to send is an integer, or bytes, text or a message in the message; one that
// came is an integer or bytes.
function encode(message) {
  const varint = (n) => (n < 128 ? [n] : [(n % 128) + 128, ...varint(Math.floor(n / 128))]);
  const parts = message.map(([field, value]) => {
    if (typeof value === "number") return Buffer.from([...varint(field * 8), ...varint(value)]);
    const bytes = Array.isArray(value) ? encode(value) : Buffer.from(value);
    return Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(bytes.length)]), bytes]);
  });
  return Buffer.concat(parts);
}

function decode(bytes) {
  const message = [];
  let at = 0;
  const varint = () => {
    let n = 0;
    for (let unit = 1; ; unit *= 128) {
      n += (bytes[at] & 127) * unit;
      if (bytes[at++] < 128) return n;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    let value = varint();
    if (tag % 8 === 2) {
      value = bytes.subarray(at, at + value);
      at += value.length;
    } else if (tag % 8 !== 0) {
      throw new Error(`a reply with a field of type ${tag % 8}`);
    }
    message.push([Math.floor(tag / 8), value]);
  }
  return message;
}

const all = (message, field) => message.filter(([f]) => f === field).map(([, value]) => value);
const text = (message, field) => all(message, field).map((bytes) => Buffer.from(bytes).toString()).join("");

// The worker, as a function that sends it bytes and returns those that it answers.
async function startWorker(assets) {
  class XMLHttpRequest {
    open(method, name) {
      this.file = path.join(assets, path.basename(name));
    }
    send() {
      this.response = fs.readFileSync(this.file);
    }
  }
  const globals = {
    self: { location: { href: "" } },
    WorkerGlobalScope: class {},
    XMLHttpRequest,
    process: undefined, // which would tell it that this is node
    console: { log() {}, warn() {}, error: console.error }, // the processor's own log
  };
  const worker = fs.readFileSync(path.join(assets, "engine_bundle.js"), "utf8");
  new Function(...Object.keys(globals), worker)(...Object.values(globals));
  const replies = [];
  const port = { postMessage: (bytes) => replies.push(bytes) };
  globals.self.onmessage({ data: port });
  await new Promise(setImmediate); // the worker finishes its promises
  return (bytes) => {
    port.onmessage({ data: bytes });
    return replies.splice(0);
  };
}

class TraceProcessor {
  constructor(send) {
    this.send = send;
    this.sequence = 0;
  }

  // Results, which lie in the given field of the replies; their own field `error` must be empty.
  request(method, args, result, error) {
    const rpc = [[1, this.sequence++], [2, method], ...args];
    const replies = this.send(encode([[1, rpc]])).flatMap((bytes) => all(decode(bytes), 1).map(decode));
    const results = replies.flatMap((reply) => all(reply, result).map(decode));
    const errors = [...replies.map((reply) => text(reply, 5)), ...results.map((r) => text(r, error))].join("");
    if (errors) throw new Error(`Perfetto says: ${errors}`);
    if (!results.length) throw new Error(`no answer to request ${method}`);
    return results;
  }

  load(trace) {
    this.request(1, [[101, trace]], 201, 2);
    this.request(2, [], 212, 1);
  }

  // Rows, where every column is text.
  query(sql) {
    const results = this.request(3, [[103, [[1, sql]]]], 203, 2);
    const columns = all(results[0], 1).length;
    const batches = results.flatMap((result) => all(result, 3).map(decode));
    const cells = batches.flatMap((batch) => text(batch, 5).split("\0").slice(0, -1));
    return Array.from({ length: cells.length / columns }, (_, row) => cells.slice(row * columns, (row + 1) * columns));
  }
}

// Events and slices as lines that can be compared.
const line = (pid, tid, ts, dur, category, name, args) =>
  `pid ${pid} tid ${tid}: ${ts} ns + ${dur} ns, ${category} "${name}" {${args.sort().join(", ")}}`;

function linesOfFile(trace) {
  const ns = (us) => Math.round(1000 * us);
  return JSON.parse(trace).traceEvents.map((e) =>
    line(e.pid, e.tid, ns(e.ts), ns(e.dur), e.cat, e.name, Object.entries(e.args).map(([key, value]) => `${key}: ${value}`))
  );
}

function linesOfPerfetto(processor) {
  const args = new Map();
  for (const [set, key, value] of processor.query(`
      select cast(arg_set_id as text), substr(key, 6), coalesce(display_value, 'null') from args where key glob 'args.*'`)) {
    args.set(set, [...(args.get(set) ?? []), `${key}: ${value}`]);
  }
  const slices = processor.query(`
      select cast(pid as text), cast(tid as text), cast(slice.ts as text), cast(slice.dur as text),
             coalesce(slice.category, ''), coalesce(slice.name, ''), coalesce(cast(slice.arg_set_id as text), '')
      from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) join process using (upid)`);
  return slices.map(([pid, tid, ts, dur, category, name, set]) =>
    line(pid, tid, ts, dur, category, name, args.get(set) ?? [])
  );
}

// What is in one list only; both may have a line several times.
function difference(file, perfetto) {
  const count = new Map();
  for (const l of file) count.set(l, (count.get(l) ?? 0) + 1);
  for (const l of perfetto) count.set(l, (count.get(l) ?? 0) - 1);
  return [...count]
    .filter(([, n]) => n !== 0)
    .map(([l, n]) => `${n > 0 ? "not in Perfetto" : "only in Perfetto"}: ${l}`);
}

async function main() {
  const [assets, file] = process.argv.slice(2);
  const trace = fs.readFileSync(file);
  const processor = new TraceProcessor(await startWorker(assets));
  processor.load(trace);
  // The sum of these is what the UI shows as import errors.
  const complaints = processor
    .query("select name, severity, cast(value as text) from stats where severity != 'info' and value != 0")
    .map(([name, severity, value]) => `Perfetto counts ${name} (${severity}): ${value}`);
  const events = linesOfFile(trace);
  complaints.push(...difference(events, linesOfPerfetto(processor)).slice(0, 10));
  if (!events.length) complaints.push("no events");
  if (complaints.length) throw new Error(complaints.join("\n"));
  const [[threads, depth]] = processor.query(`
      select cast(count(distinct track_id) as text), cast(1 + max(depth) as text) from slice`);
  console.log(`Perfetto shows ${events.length} events of ${threads} threads, nested up to ${depth} deep`);
}

main().catch((error) => {
  console.error(`${process.argv[3]}: ${error.message}`);
  process.exitCode = 1;
});
