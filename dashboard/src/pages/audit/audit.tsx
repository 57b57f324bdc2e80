// The audit log: who did what, in a chain of hashes that can be verified.
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Bones, Button, Empty, Failure, Mono, Note, Panel } from '../../components/basics.tsx'
import { Frame } from '../../components/shell.tsx'
import { address, ApiError, get } from '../../lib/api.ts'
import { second } from '../../lib/clock.ts'
import { count, plural, shortId, visible, when } from '../../lib/format.ts'
import type { AuditCheck, AuditEntry } from '../../lib/types.ts'
import { usePages } from '../../state/pages.ts'
import { place, setQuery } from '../../state/router.ts'
import { sayFailed } from '../../state/toast.ts'

const PAGE_SIZE = 100

export function Audit(): JSX.Element {
  const { from = '', to = '' } = place.value.query
  const log = usePages<AuditEntry>(address('audit', { from, to, limit: PAGE_SIZE }), 10_000)
  const [check, setCheck] = useState<AuditCheck | 'busy'>()
  const verify = async (): Promise<void> => {
    setCheck('busy')
    try {
      setCheck(await get<AuditCheck>('v1/audit/verify'))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      setCheck(undefined)
      sayFailed(error)
    }
  }
  return (
    <Frame title="Audit log" remark="One entry for each request of an act, and one for its outcome.">
      <div class="filters">
        <Day label="From" value={from} onChange={(value) => setQuery({ from: value }, { replace: true })} />
        <Day label="until" value={to} onChange={(value) => setQuery({ to: value }, { replace: true })} />
        <span class="push">
          <Button icon="check" disabled={check === 'busy'} onClick={() => void verify()}>
            Verify the chain
          </Button>
        </span>
      </div>
      {typeof check === 'object' && <Verdict check={check} />}
      <Panel label="Entries">
        {log.error !== undefined && <Failure error={log.error} onRetry={log.refresh} />}
        {log.data === undefined && log.error === undefined && <Bones rows={8} />}
        {log.items.length > 0 && (
          <table class="tight audit-table" aria-label="Entries">
            <thead>
              <tr>
                <th scope="col">At</th>
                <th scope="col">Who</th>
                <th scope="col">What</th>
                <th scope="col" class="num wide-only">
                  Chain
                </th>
              </tr>
            </thead>
            <tbody>
              {log.items.map(({ id, at, who, what, chain }) => (
                <tr key={id}>
                  <td class="mono nowrap">{when(at, second.value)}</td>
                  <td class="cut">
                    <b class="type">{who === '' ? 'the app' : visible(who)}</b>
                  </td>
                  <td class="soft audit-what">{visible(what)}</td>
                  <td class="num dim wide-only">
                    <Mono>{shortId(chain)}</Mono>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {log.data !== undefined && log.items.length === 0 && (
          <Empty icon="audit" title="No entry.">
            Every act of an operator is written here, with the name of its key.
          </Empty>
        )}
        {log.more !== undefined && (
          <footer class="row">
            <span>{plural(log.items.length, 'entry', 'entries')} shown, newest first.</span>
            <span class="push">
              <Button small onClick={log.more}>
                Show {PAGE_SIZE} more
              </Button>
            </span>
          </footer>
        )}
      </Panel>
    </Frame>
  )
}

function Verdict({ check }: { check: AuditCheck }): JSX.Element {
  if (check.kind === 'whole') {
    return (
      <Note tone="run" icon="s-up">
        <b>The chain is whole.</b> {plural(check.entries, 'entry', 'entries')} verified
        {check.head !== undefined && (
          <>
            ; the newest is <Mono>{check.head.chain}</Mono>
          </>
        )}
        .
      </Note>
    )
  }
  const reason =
    check.why === 'changed'
      ? 'this entry or one before it was changed'
      : check.why === 'cut'
        ? 'the entries from here on are missing'
        : 'the given entry is not in the log'
  return (
    <Note tone="fail" icon="s-dead">
      <b>The chain is broken at entry {count(check.at)}:</b> {reason}.
    </Note>
  )
}

function Day(props: { label: string; value: string; onChange: (value: string | undefined) => void }): JSX.Element {
  const { label, value, onChange } = props
  return (
    <label class={`field${value === '' ? ' none' : ''}`}>
      <span class="dim">{label}</span>
      <input
        type="date"
        value={value}
        onChange={({ currentTarget: { value: text } }) => onChange(text === '' ? undefined : text)}
      />
    </label>
  )
}
