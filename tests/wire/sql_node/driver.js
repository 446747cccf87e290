// What ksqlDB's Java client does on the wire, by Node's own http2: `node driver.js URL STREAM`. Prints what it saw as JSON.
const http2 = require("node:http2");

const [url, target] = process.argv.slice(2);

// A stream of a session: lines in, lines out, both open at once.
function open(session, path) {
  const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/json" });
  const lines = [], waiting = [];
  let left = "", ended = false;
  const tell = () => {
    while (waiting.length && (lines.length || ended)) waiting.shift()(lines.length ? JSON.parse(lines.shift()) : null);
  };
  stream.setEncoding("utf8");
  stream.on("data", (text) => {
    const found = (left + text).split("\n");
    left = found.pop();
    lines.push(...found.filter((line) => line));
    tell();
  });
  stream.on("close", () => { ended = true; tell(); });
  return {
    stream,
    write: (value) => stream.write(JSON.stringify(value) + "\n"),
    end: (value) => stream.end(value === undefined ? undefined : JSON.stringify(value)),
    line: () => new Promise((told) => { waiting.push(told); tell(); }),
  };
}

async function main() {
  const session = http2.connect(url);
  const seen = {};
  const inserts = open(session, "/inserts-stream");
  inserts.write({ target });
  inserts.write({ ID: 1, ITEM: "tea" });
  seen.first = await inserts.line(); // while the stream is open
  inserts.write({ ID: 2, ITEM: "milk" });
  seen.second = await inserts.line();
  inserts.end();
  seen.insertsEnd = await inserts.line();

  const sql = `SELECT ID, ITEM FROM ${target} EMIT CHANGES;`;
  const push = open(session, "/query-stream");
  push.end({ sql, properties: { "auto.offset.reset": "earliest" } });
  const head = await push.line();
  seen.columns = head.columnNames;
  seen.rows = [await push.line(), await push.line()].sort();
  const close = open(session, "/close-query");
  close.end({ queryId: head.queryId });
  seen.closed = await push.line();

  const other = open(http2.connect(url), "/query-stream");
  other.end({ sql });
  seen.left = (await other.line()).queryId;
  other.stream.session.destroy(); // hangs up
  session.close();
  console.log(JSON.stringify(seen));
}

main().catch((error) => { console.error(error); process.exit(1); });
