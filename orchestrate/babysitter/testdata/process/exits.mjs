export async function process() {
  globalThis.process.exit(3);
}
