export * from './types/outside.ts'
export * from './types/status.ts'
export * from './types/work.ts'
