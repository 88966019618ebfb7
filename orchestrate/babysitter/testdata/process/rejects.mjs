export async function process() {
  Promise.reject(new Error('left alone'));
  await new Promise((done) => setTimeout(done, 600_000));
}
