import { task } from './basic.mjs';
export async function process(inputs, ctx) {
  setInterval(() => {}, 1000);
  return await ctx.task(task('greet'), {});
}
