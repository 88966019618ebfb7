import { task } from './basic.mjs';
console.log('loading');
export async function process(inputs, ctx) {
  console.log('{"status":"waiting"}');
  console.log({ status: 'waiting' });
  setTimeout(() => console.log('{"status":"failed","reason":"late"}'), 50);
  globalThis.process.stdout.write('unfinished line');
  return await ctx.task(task('greet'), {});
}
