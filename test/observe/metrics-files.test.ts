// The alert rules and the dashboard in the documents are valid, and use only metrics that exist.
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { Metrics } from '../../src/observe/metrics/metrics.ts'
import { scene } from './stats-scene.ts'

const read = (file: string): Promise<string> => readFile(new URL(`../../docs/operate/${file}`, import.meta.url), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly for?: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string }
}

async function rules(): Promise<readonly Rule[]> {
  const { groups } = parse(await read('alerts.rules.yml')) as { groups: readonly { rules: readonly Rule[] }[] }
  return groups.flatMap((group) => group.rules)
}

/** On one line. */
async function exprOf(name: string): Promise<string> {
  return (await rules()).find(({ alert }) => alert === name)?.expr.replaceAll(/\s+/g, ' ') ?? ''
}

interface Panel {
  readonly id: number
  readonly title: string
  readonly gridPos: { readonly x: number; readonly w: number }
  readonly targets: readonly { readonly expr: string; readonly refId: string }[]
}

async function panels(): Promise<readonly Panel[]> {
  return (JSON.parse(await read('grafana.json')) as { panels: readonly Panel[] }).panels
}

/** For each metric of the engine, its labels. */
async function told(): Promise<ReadonlySet<string>> {
  const made = await scene('memory:')
  const { clock, store } = made
  const { events } = made.process()
  const metrics = new Metrics({ events, clock, now: () => clock.now(), store: async () => store })
  const types = [...(await metrics.render()).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  return new Set(
    types.flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  )
}

const named = (expr: string): readonly string[] => expr.match(/\b(?:sluice|process|nodejs)_\w+/g) ?? []

const plain = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '')

const isBalanced = (expr: string): boolean =>
  ['()', '[]', '{}'].every(([open = '', close = '']) => expr.split(open).length === expr.split(close).length)

describe('docs/operate', () => {
  it('every metric in an alert rule or the dashboard exists', async () => {
    const known = await told()
    const exprs = [
      ...(await rules()).map(({ expr }) => expr),
      ...(await panels()).flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ]
    for (const expr of exprs) {
      expect(named(expr).length, expr).toBeGreaterThan(0)
      expect(isBalanced(expr), expr).toBe(true)
      for (const name of named(expr)) expect([...known], expr).toContain(name)
    }
  })

  it('every metric of the engine is in the dashboard or in monitor.md, and all metrics in monitor.md exist', async () => {
    const known = [...(await told())].filter((name) => name.startsWith('sluice_'))
    const document = await read('monitor.md')
    const listed = new Set(document.match(/\bsluice_[a-z_]+\b/g))
    expect([...new Set(known.map(plain))].filter((name) => !listed.has(name))).toEqual([])
    expect([...listed].filter((name) => !known.map(plain).includes(plain(name)))).toEqual([])
  })

  it('every rule has a description and a severity, and no name appears twice', async () => {
    const all = await rules()
    expect(new Set(all.map(({ alert }) => alert)).size).toBe(all.length)
    for (const { alert, labels, annotations } of all) {
      expect(alert).toMatch(/^Sluice[A-Z]\w+$/)
      expect(['warning', 'critical']).toContain(labels.severity)
      expect(annotations.summary).not.toBe('')
    }
    for (const preset of [
      'DeadLetters',
      'Slow',
      'Failing',
      'Deep',
      'Stuck',
      'StoreNearlyFull',
      'LimitStarving',
      'ClockOffset',
      'OldSnapshot',
    ])
      expect(all.map(({ alert }) => alert)).toContain(`Sluice${preset}`)
  })

  it('a paused flow counts neither as stuck nor as deep, and an open window does not count as depth', async () => {
    const unpaused = 'unless on (flow) max by (flow) (sluice_flow_paused) == 1'
    expect(await exprOf('SluiceStuck')).toBe(`max by (flow) (sluice_oldest_ready_seconds) > 300 ${unpaused}`)
    expect(await exprOf('SluiceDeep')).toBe(`sum( max by (flow) (sluice_lanes{state="ready"}) ${unpaused} ) > 100`)
  })

  it('panels over metrics of any Node.js process show only processes of Sluice', async () => {
    const exprs = (await panels()).flatMap(({ targets }) => targets.map(({ expr }) => expr))
    const ofAnyProcess = exprs.filter((expr) => /\b(?:process|nodejs)_/.test(expr))
    expect(ofAnyProcess.length).toBeGreaterThan(0)
    for (const expr of ofAnyProcess) expect(expr).toMatch(/ and on \(job, instance\) sluice_\w+$/)
  })

  it('the panels of the dashboard do not overlap', async () => {
    const all = await panels()
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
    for (const { gridPos } of all) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
  })
})
