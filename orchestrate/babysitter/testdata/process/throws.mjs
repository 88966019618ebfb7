import { task } from './basic.mjs';
export async function process(inputs, ctx) {
  await ctx.task(task('greet'), {});
  throw Object.assign(new TypeError('no good'), { data: { code: 7 } });
}
