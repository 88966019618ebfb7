import { spawn } from 'node:child_process';
import fs from 'node:fs';
export async function process(inputs) {
  const child = spawn('sleep', ['600'], { stdio: 'inherit' });
  fs.appendFileSync(inputs.children, `${child.pid}\n`);
  await new Promise((done) => setTimeout(done, 600_000));
}
