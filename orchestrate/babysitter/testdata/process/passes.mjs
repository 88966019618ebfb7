// What it catches is its result.
import { task } from './basic.mjs';
export async function process(inputs, ctx) {
  try {
    return await ctx.task(task('greet'), {});
  } catch (e) {
    if (e.isIntrinsic || /Effect(Requested|Pending)Error/.test(e.name)) throw e;
    return { name: e.name, message: e.message, data: e.data };
  }
}
