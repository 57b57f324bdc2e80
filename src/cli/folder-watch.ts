// `FolderWatcher` watches the files of a folder and of all folders in it. It watches folders instead of files: an editor
// that replaces a file on save would leave a file watch on the old one.
import { readdirSync, watch, type Dirent, type FSWatcher } from 'node:fs'
import { join, relative, sep } from 'node:path'

export interface FolderWatcherOptions {
  readonly folder: string
  /** Returns whether the folder with this name is ignored, including everything in it. */
  readonly isIgnored: (name: string) => boolean
  /** A file was added, changed or removed. The path is relative to the folder. */
  readonly onChange: (path: string) => void
  /** A folder cannot be watched. */
  readonly onError: (folder: string, error: unknown) => void
}

export class FolderWatcher {
  readonly #deps: FolderWatcherOptions
  readonly #watchers = new Map<string, FSWatcher>()

  constructor(deps: FolderWatcherOptions) {
    this.#deps = deps
    this.#add(deps.folder, false)
  }

  close(): void {
    this.#unwatch(this.#deps.folder)
  }

  /** `isNew` means that the files already in the folder were added unnoticed. */
  #add(folder: string, isNew: boolean): void {
    try {
      // Watching starts before the folder is read: a file added in between is then seen twice instead of never.
      const watcher = watch(folder, (kind, name) => {
        if (name !== null) this.#onEvent(folder, name, kind === 'rename')
      })
      watcher.on('error', () => this.#unwatch(folder))
      this.#watchers.set(folder, watcher)
      for (const entry of readdirSync(folder, { withFileTypes: true })) this.#enter(folder, entry, isNew)
    } catch (error) {
      this.#unwatch(folder)
      // A folder that has vanished meanwhile was only temporary.
      if (!isGone(error)) this.#deps.onError(folder, error)
    }
  }

  #enter(folder: string, entry: Dirent, isNew: boolean): void {
    const path = join(folder, entry.name)
    if (!entry.isDirectory()) {
      if (isNew) this.#emitChange(path)
    } else if (!this.#deps.isIgnored(entry.name)) this.#add(path, isNew)
  }

  /** Handles a change of a file or a folder. `isOther` means that it was added, removed or replaced. */
  #onEvent(folder: string, name: string, isOther: boolean): void {
    const path = join(folder, name)
    // Only the time or mode of the folder changed; it is still the same folder.
    if (!isOther && this.#watchers.has(path)) return
    this.#unwatch(path)
    const entry = findEntry(folder, name)
    if (entry?.isDirectory() === true) this.#enter(folder, entry, true)
    else this.#emitChange(path)
  }

  #emitChange(path: string): void {
    this.#deps.onChange(relative(this.#deps.folder, path))
  }

  /** Also stops watching everything below the folder. */
  #unwatch(folder: string): void {
    for (const [path, watcher] of this.#watchers) {
      if (path !== folder && !path.startsWith(folder + sep)) continue
      this.#watchers.delete(path)
      watcher.close()
    }
  }
}

function findEntry(folder: string, name: string): Dirent | undefined {
  try {
    return readdirSync(folder, { withFileTypes: true }).find((entry) => entry.name === name)
  } catch {
    return undefined
  }
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}
