// Lint rules of this project's own: which folder of src/ may import what (ARCHITECTURE.md), and where time is read.
// The rules that come with the linter can express neither.
import { dirname, posix, relative, sep } from 'node:path'
import { root } from './lib.mjs'

const stages = ['receive', 'schedule', 'run', 'deliver', 'upkeep']
const assembly = [
  'index.ts',
  'sluice.ts',
  'engine.ts',
  'housekeeping.ts',
  'working.ts',
  'receiving.ts',
  'opening.ts',
  'under-test.ts',
  'alerting.ts',
  'delivering.ts',
  'operating.ts',
  'own-flows.ts',
  'options.ts',
  'api',
  'http',
  'cli',
  'demo',
  'testing',
]
const stage = (own) => ({
  never: [...stages.filter((name) => name !== own), ...assembly],
  why: 'stages meet only in the store, and do not know what they are assembled into',
})

/** For each folder, the parts of src/ it may import (`only`) or may not (`never`), and the packages, if not all. */
const layers = {
  model: {
    only: ['model', 'errors.ts', 'clock.ts'],
    packages: ['node:crypto'],
    why: 'the model is types and pure functions',
  },
  store: {
    only: ['store', 'model', 'errors.ts', 'clock.ts', 'busy-map.ts'],
    why: 'a store knows only its contract and the model',
  },
  ...Object.fromEntries(stages.map((name) => [name, stage(name)])),
}

const pathIn = (folder, file) => relative(folder, file).split(sep).join('/')

/** Says what is wrong with an import, or nothing. */
function objection(file, specifier) {
  const layer = layers[file.split('/')[1]]
  if (!file.startsWith('src/') || layer === undefined) return undefined
  const [top, part] = posix.join(dirname(file), specifier).split('/')
  const allowed = specifier.startsWith('.')
    ? top === 'src' && (layer.only?.includes(part) ?? !layer.never.includes(part))
    : (layer.packages?.includes(specifier) ?? true)
  return allowed ? undefined : `${file.split('/')[1]}/ may not import "${specifier}": ${layer.why}.`
}

const layerRule = {
  create(context) {
    const file = pathIn(root, context.filename)
    const look = ({ source }) => {
      if (typeof source?.value !== 'string') return
      const message = objection(file, source.value)
      if (message !== undefined) context.report({ node: source, message })
    }
    return {
      ImportDeclaration: look,
      ImportExpression: look,
      ExportNamedDeclaration: look,
      ExportAllDeclaration: look,
      TSImportType: look,
    }
  },
}

const presentDateRule = {
  create(context) {
    const look = (node) => {
      if (node.callee.type !== 'Identifier' || node.callee.name !== 'Date') return
      if (node.type === 'NewExpression' && node.arguments.length > 0) return
      context.report({ node, message: 'Time comes from the Clock: give Date the instant it stands for.' })
    }
    return { NewExpression: look, CallExpression: look }
  },
}

// The linter's plugin interface asks for a default export.
export default {
  meta: { name: 'sluice' },
  rules: { layers: layerRule, 'no-present-date': presentDateRule },
}
