// `sluice completion` builds shell completion scripts from the declarations of the commands.
import { COMMON_OPTIONS } from '../arguments.ts'
import { reportMisuse, type Command } from '../command.ts'
import { EXIT } from '../exit.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

/** Commands besides those in the given list. */
const BUILT_IN_COMMANDS: readonly string[] = ['help', 'completion']

export function completion(commands: readonly Command[]): Command {
  return {
    name: 'completion',
    positionals: ['<bash|zsh|fish>'],
    description: 'print a completion script: source <(sluice completion bash)',
    run: (context) => {
      const shell = SHELLS.find((name) => name === context.args.words[0])
      if (shell === undefined)
        return Promise.resolve(reportMisuse(context, `The shell must be one of ${SHELLS.join(', ')}.`))
      context.output.print(SCRIPTS[shell](buildTree(commands)))
      return Promise.resolve(EXIT.done)
    },
  }
}

/** Maps the words typed so far, `''` for none, to the possible next words. */
type Tree = ReadonlyMap<string, readonly string[]>

function buildTree(commands: readonly Command[]): Tree {
  const tree = new Map<string, readonly string[]>([['completion', SHELLS]])
  const firsts = commands.map(({ name: words }) => words.split(' ')[0] ?? '')
  tree.set('', [...new Set([...BUILT_IN_COMMANDS, ...firsts])].toSorted())
  for (const { name: words, options = {} } of commands) {
    const typed = words.split(' ')
    tree.set(
      words,
      Object.keys({ ...options, ...COMMON_OPTIONS }).map((name) => `--${name}`),
    )
    for (const [at, word] of typed.slice(1).entries()) {
      const before = typed.slice(0, at + 1).join(' ')
      tree.set(before, [...new Set([...(tree.get(before) ?? []), word])])
    }
  }
  // `list` may be omitted, so its options also follow the first word.
  for (const first of firsts) {
    const ofList = tree.get(`${first} list`)
    if (ofList !== undefined) tree.set(first, [...new Set([...(tree.get(first) ?? []), ...ofList])])
  }
  return tree
}

const SCRIPTS: Readonly<Record<Shell, (tree: Tree) => string>> = {
  // bash may pass `--flow=x` as three words.
  bash: (tree) => `_sluice() {
  local word before="" typed="" next=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ "$word" == -* || "$word" == "=" || "$before" == "=" ]] || typed+="$word "
    before="$word"
  done
  case "$typed" in
${toCases(tree)}
  esac
  COMPREPLY=($(compgen -W "$next" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sluice sluice`,
  zsh: (tree) => `#compdef sluice
_sluice() {
  local typed="" next="" word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ "$word" == -* ]] || typed+="$word "
  done
  case "$typed" in
${toCases(tree)}
  esac
  compadd -- \${=next}
}
compdef _sluice sluice`,
  fish: (tree) =>
    [...tree]
      .map(([typed, next]) => {
        const when =
          typed === ''
            ? '__fish_use_subcommand'
            : `string match -qr '^sluice( --\\S+)* ${typed}( |$)' -- (commandline -pc)`
        return `complete -c sluice -n "${when}" -f -a "${next.join(' ')}"`
      })
      .join('\n'),
}

/** The longest first: `dead list` before `dead`. Positional arguments may follow a complete command. */
function toCases(tree: Tree): string {
  return [...tree]
    .toSorted(([one], [other]) => other.split(' ').length - one.split(' ').length || one.localeCompare(other))
    .map(([typed, next]) => `    ${typed === '' ? "''" : `'${typed} '*`}) next="${next.join(' ')}" ;;`)
    .join('\n')
}
