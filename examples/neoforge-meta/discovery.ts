// `discover` looks at the repository of a component, and stores each new, changed or withdrawn version together with its event.
import type { Sluice } from 'sluice'
import { readVersions, saveChanges, type VersionsTable } from './data/versions-table.ts'
import { toEvent } from './domain/events.ts'
import { compareVersions, parseManifest, parseMavenMetadata, type Component, type Version } from './domain/versions.ts'

export interface Repository {
  readonly url: string
  readonly fetch: typeof globalThis.fetch
  readonly signal: AbortSignal
}

interface Listing {
  readonly path: string
  readonly parse: (text: string) => readonly Version[]
}

const LISTINGS: Readonly<Record<Component, Listing>> = {
  NEOFORGE: { path: '/releases/net/neoforged/neoforge/maven-metadata.xml', parse: parseMavenMetadata },
  MINECRAFT: { path: '/mc/game/version_manifest_v2.json', parse: parseManifest },
}

/** Two processes that discover at the same time publish each change once. */
export async function discover(
  { app, table }: { readonly app: Sluice; readonly table: VersionsTable },
  component: Component,
  { url, fetch, signal }: Repository,
): Promise<void> {
  const { path, parse } = LISTINGS[component]
  const response = await fetch(url + path, { signal })
  if (!response.ok) throw new Error(`The repository of ${component} answered ${response.status}.`)
  const listed = parse(await response.text())
  await table.transaction(async (tx) => {
    const changes = await saveChanges(tx, compareVersions(await readVersions(tx, component), listed))
    if (changes.length > 0) await app.publish(changes.map(toEvent), { tx })
  })
}
