export async function process(inputs, ctx) {
  await ctx.sleepUntil('2100-01-01T00:00:00.000Z');
}
