import { spawn } from 'node:child_process';
export async function process(inputs) {
  spawn('sleep', ['600'], { stdio: 'inherit' });
  await new Promise((done) => setTimeout(done, 600_000));
}
