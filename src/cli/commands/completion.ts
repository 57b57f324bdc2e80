// `sluice completion`: what a shell needs to complete commands and options, made of the declarations.
import { COMMON } from '../arguments.ts'
import { misused, type Command } from '../command.ts'
import { EXIT } from '../exit.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** Beside those that operate: they read their own words. */
const OTHERS: readonly string[] = ['dev', 'start', 'version', 'help', 'completion']

export function completion(commands: readonly Command[]): Command {
  return {
    words: 'completion',
    takes: ['<bash|zsh|fish>'],
    says: 'the completion of a shell: source <(sluice completion bash)',
    run: (scene) => {
      const shell = SHELLS.find((name) => name === scene.given.words[0])
      if (shell === undefined) return Promise.resolve(misused(scene, `A shell is one of ${SHELLS.join(', ')}.`))
      scene.out.line(SCRIPTS[shell](treeOf(commands)))
      return Promise.resolve(EXIT.done)
    },
  }
}

/** By what has been typed, `''` for nothing: what may come next. */
type Tree = ReadonlyMap<string, readonly string[]>

function treeOf(commands: readonly Command[]): Tree {
  const tree = new Map<string, readonly string[]>([['completion', SHELLS]])
  const firsts = commands.map(({ words }) => words.split(' ')[0] ?? '')
  tree.set('', [...new Set([...OTHERS, ...firsts])].toSorted())
  for (const { words, options = {} } of commands) {
    const [first = '', second] = words.split(' ')
    tree.set(
      words,
      Object.keys({ ...options, ...COMMON }).map((name) => `--${name}`),
    )
    if (second !== undefined) tree.set(first, [...(tree.get(first) ?? []), second])
  }
  return tree
}

const SCRIPTS: Readonly<Record<Shell, (tree: Tree) => string>> = {
  bash: (tree) => `_sluice() {
  local typed="\${COMP_WORDS[*]:1:COMP_CWORD-1}" next=""
  case "$typed" in
${casesOf(tree)}
  esac
  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice`,
  zsh: (tree) => `#compdef sluice
_sluice() {
  local typed="\${words[2,CURRENT-1]}" next=""
  case "$typed" in
${casesOf(tree)}
  esac
  compadd -- \${=next}
}
compdef _sluice sluice`,
  fish: (tree) =>
    [...tree]
      .map(([typed, next]) => {
        const when =
          typed === '' ? '__fish_use_subcommand' : `string match -qr '^sluice ${typed}( |$)' -- (commandline -pc)`
        return `complete -c sluice -n "${when}" -f -a "${next.join(' ')}"`
      })
      .join('\n'),
}

/** The longest first: `dead list` before `dead`. Words of one's own may stand behind a whole command. */
function casesOf(tree: Tree): string {
  return [...tree]
    .toSorted(([one], [other]) => other.split(' ').length - one.split(' ').length || one.localeCompare(other))
    .map(([typed, next]) => `    ${typed === '' ? "''" : `'${typed}'|'${typed} '*`}) next="${next.join(' ')}" ;;`)
    .join('\n')
}
