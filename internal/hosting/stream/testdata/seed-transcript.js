// The transcript store of the babysitter that heartbeat-host replaces, rebuilt: after
// each message the whole transcript is serialised and written with insert-or-replace.
//
//   node seed-transcript.js DATABASE LINES FROM
//
// LINES has a message a line. Prints, as a JSON array, how many nanoseconds each
// message from number FROM on took, from its line to its commit.
"use strict";
const fs = require("fs");
const Database = require("better-sqlite3");

const [path, lines, from] = process.argv.slice(2);
const db = new Database(path);
db.pragma("journal_mode = WAL");
db.exec("CREATE TABLE IF NOT EXISTS books_animator_transcripts (id TEXT PRIMARY KEY, content TEXT NOT NULL)");
const write = db.prepare("INSERT OR REPLACE INTO books_animator_transcripts (id, content) VALUES (?, ?)");

const messages = [];
const took = [];
for (const line of fs.readFileSync(lines, "utf8").split("\n")) {
  if (line === "") continue;
  const start = process.hrtime.bigint();
  messages.push(JSON.parse(line));
  write.run("ses-1", JSON.stringify({ id: "ses-1", messages }));
  if (messages.length >= Number(from)) took.push(Number(process.hrtime.bigint() - start));
}
db.close();
console.log(JSON.stringify(took));
