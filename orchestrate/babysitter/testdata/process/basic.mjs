// One task, and its value for a result.
export const task = (taskId, kind = 'agent') => ({
  id: taskId,
  async build(args) {
    return { kind, title: `Do ${taskId}`, [kind]: { prompt: args }, labels: [taskId, 'b'] };
  },
});
export async function process(inputs, ctx) {
  const answer = await ctx.task(task('greet'), { name: inputs?.name ?? 'nobody' });
  return { answer };
}
