// `isTooDeep` measures the nesting of JSON from its bytes. Code that walks JSON recurses, `JSON.stringify` included, so the depth
// must be bounded (R4).
export const MAX_JSON_DEPTH = 64

/** Brackets within strings do not count. */
function measureDepth(body: Uint8Array): number {
  let depth = 0
  let deepest = 0
  let inText = false
  for (let at = 0; at < body.length; at++) {
    const byte = body[at]
    if (inText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) inText = false
    } else if (byte === 0x22) inText = true
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x7d || byte === 0x5d) depth--
  }
  return deepest
}

export function isTooDeep(body: Uint8Array): boolean {
  return body.length > MAX_JSON_DEPTH && measureDepth(body) > MAX_JSON_DEPTH
}
