// Every page of the dashboard. A page other than the first is loaded when it is opened.
import type { ComponentType } from 'preact'
import type { PageName } from '../lib/routes.ts'

export type PageView = ComponentType

export const PAGE_LOADERS: Readonly<Partial<Record<PageName, () => Promise<PageView>>>> = {}
