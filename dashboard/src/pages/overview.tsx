import type { JSX } from 'preact'
import { Frame } from '../components/shell.tsx'

export function Overview(): JSX.Element {
  return <Frame title="Overview">…</Frame>
}
