import { task } from './basic.mjs';
console.log('loading');
export async function process(inputs, ctx) {
  console.log('{"status":"waiting"}');
  console.log({ status: 'waiting' });
  globalThis.process.stdout.write('an unfinished line');
  globalThis.process.once('exit', () => console.log('{"status":"failed","reason":"late"}\n{'));
  return await ctx.task(task('greet'), {});
}
