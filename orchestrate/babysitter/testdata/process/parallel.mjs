import { task } from './basic.mjs';
export async function process(inputs, ctx) {
  return await ctx.parallel.all(['a', 'b', 'c'].map((id) => () => ctx.task(task(id), {})));
}
