import { task } from './basic.mjs';
import fs from 'node:fs';
export async function process(inputs, ctx) {
  fs.writeFileSync(inputs.began, '');
  while (!fs.existsSync(inputs.go)) await new Promise((done) => setTimeout(done, 20));
  return await ctx.task(task('greet'), {});
}
