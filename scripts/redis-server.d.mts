export function findRedisServer(): string | undefined
export function installRedisServer(): void
