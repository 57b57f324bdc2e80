// How deep JSON is nested, told from its bytes: whoever walks it recurses, JSON.stringify first of all (R4).
export const DEPTH_MAX = 64

/** Strings are skipped, so that brackets in them do not count. */
function depthOf(body: Uint8Array): number {
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
  return body.length > DEPTH_MAX && depthOf(body) > DEPTH_MAX
}
