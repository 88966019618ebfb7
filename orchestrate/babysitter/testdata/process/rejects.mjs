import { task } from './basic.mjs';
export async function process(inputs, ctx) {
  return await ctx.parallel.all([ctx.task(task('greet'), {})]);
}
