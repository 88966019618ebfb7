export async function process() {
  await new Promise(() => {});
}
