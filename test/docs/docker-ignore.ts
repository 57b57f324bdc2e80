// Which files a `.dockerignore` keeps out of an image, by the rules of Docker and Podman: a pattern is matched against the whole
// path from the folder that is built, and against each folder above the file; the last pattern that matches counts.

/** `isKeptOut` returns whether a file, by its path from the folder that is built, does not get into the image. */
export function isKeptOut(ignore: string, path: string): boolean {
  const parts = path.split('/')
  const whole = parts.map((_, at) => parts.slice(0, at + 1).join('/'))
  let isOut = false
  for (const line of ignore.split('\n')) {
    const written = line.trim()
    if (written === '' || written.startsWith('#')) continue
    const isException = written.startsWith('!')
    const pattern = patternOf(isException ? written.slice(1) : written)
    if (whole.some((one) => pattern.test(one))) isOut = !isException
  }
  return isOut
}

/** `**` is any number of folders, none included; `*` and `?` stay within a name. Slashes around a pattern mean nothing. */
function patternOf(written: string): RegExp {
  const pieces = written.replaceAll(/^\/+|\/+$/g, '').match(/\*\*\/?|\*|\?|\[[^\]]*\]|\\.|[^]/g) ?? []
  const source = pieces.map((piece, at) => {
    if (piece.startsWith('**')) return at === pieces.length - 1 ? '.*' : '(?:.*/)?'
    if (piece === '*') return '[^/]*'
    if (piece === '?') return '[^/]'
    return piece.length > 1 ? piece : piece.replace(/[.+()|{}$^]/, String.raw`\$&`)
  })
  return new RegExp(`^${source.join('')}$`)
}
