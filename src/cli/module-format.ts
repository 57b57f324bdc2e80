// Lets a configuration with `import` and `export` load in any package. `npm init -y` writes `"type": "commonjs"`, with
// which Node would refuse such a .ts or .js file.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

/** A line that begins with a statement only a module can have. `import(…)` is allowed in both formats. */
const MODULE_SYNTAX =
  /^\s*(?:import\s*(?:[\w{*'"])|export\s+(?:default|const|let|function|class|async|type|interface|\{|\*))/m
const EITHER_FORMAT = /\.[jt]s$/

/** `loadAsModules` loads the project's own .ts and .js files that use module syntax as modules, regardless of the `type` in package.json. */
export function loadAsModules(): void {
  registerHooks({
    load: (url, context, nextLoad) => {
      const format = moduleFormat(url)
      return format === undefined ? nextLoad(url, context) : nextLoad(url, { ...context, format })
    },
  })
}

function moduleFormat(url: string): string | undefined {
  if (!url.startsWith('file:') || url.includes('/node_modules/')) return undefined
  const { pathname } = new URL(url)
  if (!EITHER_FORMAT.test(pathname)) return undefined
  try {
    if (!MODULE_SYNTAX.test(readFileSync(fileURLToPath(url), 'utf8'))) return undefined
  } catch {
    return undefined
  }
  return pathname.endsWith('.ts') ? 'module-typescript' : 'module'
}
