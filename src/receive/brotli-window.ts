// This file reads the window size that a Brotli stream asks its decoder for (RFC 7932, section 9.1). A stream of some
// fifty bytes can ask for 16 MB, and have the decoder fill it before it returns a byte.

/** The default window of common encoders, for bodies of any size. */
const DEFAULT_WINDOW = 4 * 1024 * 1024

/** `windowFault` returns why the window is rejected. No sender needs a window larger than the longest allowed body. */
export function windowFault(packed: Uint8Array, maxBody: number): string | undefined {
  const most = Math.max(DEFAULT_WINDOW, maxBody)
  const window = readBrotliWindow(packed)
  return window > most ? `The Brotli window is ${window} bytes; at most ${most} are allowed.` : undefined
}

/** `readBrotliWindow` reads the size from the first byte. The decoder rejects streams with an invalid header. */
export function readBrotliWindow([first = 0]: Uint8Array): number {
  if ((first & 1) === 0) return 2 ** 16
  const large = (first >> 1) & 7
  if (large > 0) return 2 ** (17 + large)
  const small = (first >> 4) & 7
  return small === 0 ? 2 ** 17 : 2 ** (8 + small)
}
