// Computes which files a `.dockerignore` keeps out of an image, by the rules of Docker and Podman: a pattern is matched against the
// whole path from the build folder, and against each folder above the file. The last pattern that matches decides.

/** `isKeptOut` returns whether a file is kept out of the image, by its path from the build folder. */
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

/** `**` matches any number of folders, also none; `*` and `?` stay within a name. Slashes around a pattern have no meaning. */
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
