export async function process( {
