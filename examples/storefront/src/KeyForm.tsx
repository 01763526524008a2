/** Asks for the API key. */
import { Page } from './Page.tsx'
import { Portrait } from './Portrait.tsx'
import { categories } from './shop.ts'

interface Props {
  /** The key that the service did not take, if that is why this is shown. */
  refused: string | undefined
  onEnter(key: string): void
}

export function KeyForm({ refused, onEnter }: Props) {
  return (
    <div className="welcome">
      <div className="parade">
        {[...categories.values()].map(({ species }) => (
          <Portrait key={species} species={species} />
        ))}
      </div>
      <Page title="Come in and meet them">
        <form action={(form) => onEnter(String(form.get('key')).trim())} autoComplete="off">
          <label htmlFor="key">API key</label>
          <p className="hint" id="key-hint">
            The shop gave you one. It stays in this tab and is forgotten when you close it.
          </p>
          <input
            id="key"
            name="key"
            className="control"
            type="password"
            required
            // What a header can carry; anything else would never leave the browser.
            pattern="\s*[!-~]+\s*"
            title="letters, digits and signs, without spaces"
            defaultValue={refused}
            spellCheck={false}
            aria-invalid={refused !== undefined}
            aria-describedby="key-hint key-problem"
          />
          <p className="problem" id="key-problem" role="alert">
            {refused !== undefined && 'The shop does not know this key. Is it complete?'}
          </p>
          <button type="submit">Open the catalogue</button>
        </form>
      </Page>
    </div>
  )
}
