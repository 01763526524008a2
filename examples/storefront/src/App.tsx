/** The frame of every page: the header, the API key, and the page of the URL. */

import type { Pet } from '@petstore-catalogue/petstore/client'
import { QueryClientProvider } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { AddPet } from './AddPet.tsx'
import { Catalogue } from './Catalogue.tsx'
import { Reach } from './Contact.tsx'
import { KeyForm } from './KeyForm.tsx'
import { Nothing } from './Nothing.tsx'
import { shorten } from './name.ts'
import { Page } from './Page.tsx'
import { PetPage } from './PetPage.tsx'
import { connect, mayAdd, shopKey, TRPCProvider } from './petstore.ts'
import { go, links, type Route, useRoute } from './route.ts'
import { shopName } from './shop.ts'

const STORED_KEY = 'petstore-key'

interface Visit {
  /** The entered key; empty for a visitor, who uses the key of the shop. */
  ownKey: string
  /** The key that the service rejects. */
  refused?: string
}

/** What the browser keeps for the tab; nothing in a browser that blocks the data of sites. */
function stored<T>(use: (storage: Storage) => T): T | undefined {
  try {
    return use(sessionStorage)
  } catch {
    return undefined
  }
}

export function App() {
  const route = useRoute()
  const [{ ownKey, refused }, setVisit] = useState<Visit>(() => ({
    ownKey: stored((storage) => storage.getItem(STORED_KEY)) ?? '',
  }))
  // Stored for this tab only, until it is closed.
  useEffect(() => void stored((storage) => storage.setItem(STORED_KEY, ownKey)), [ownKey])
  const apiKey = ownKey || shopKey
  const connection = useMemo(
    () => connect(apiKey, () => setVisit({ ownKey: '', refused: apiKey })),
    [apiKey],
  )
  const isOpen = apiKey !== '' && apiKey !== refused
  const isStaff = isOpen && mayAdd(apiKey)
  const isAsked =
    !isOpen || refused !== undefined || route.page === 'staff' || (route.page === 'add' && !isStaff)
  const enter = (key: string) => {
    setVisit({ ownKey: key })
    if (route.page === 'staff') go(links.catalogue(route.filter))
  }
  // Cancels the form for the key: a visitor may use the key of the shop.
  const giveUp = () => isOpen && setVisit({ ownKey })

  return (
    <>
      <header className="top">
        <a className="brand" href={links.catalogue()} onClick={giveUp}>
          <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width="36" height="36" />
          {shopName}
        </a>
        {isStaff && route.page !== 'add' && (
          <nav aria-label="Main">
            <a className="button" href={links.add(route.filter)}>
              Add an animal
            </a>
          </nav>
        )}
      </header>
      <main>
        {isAsked ? (
          <>
            {isOpen && (
              <a className="back" href={links.catalogue(route.filter)} onClick={giveUp}>
                <span aria-hidden="true">← </span>Our animals
              </a>
            )}
            <KeyForm
              isOpen={isOpen}
              expired={refused === shopKey ? undefined : refused}
              onEnter={enter}
            />
          </>
        ) : (
          <QueryClientProvider client={connection.queryClient}>
            <TRPCProvider {...connection}>
              <CurrentPage route={route} isStaff={isStaff} />
            </TRPCProvider>
          </QueryClientProvider>
        )}
      </main>
      <footer className="bottom">
        {!isStaff && <Reach />}
        {ownKey && (
          <button type="button" className="quiet" onClick={() => setVisit({ ownKey: '' })}>
            Leave
          </button>
        )}
        {!ownKey && !isAsked && (
          <a className="button quiet" href={links.staff(route.filter)}>
            Staff
          </a>
        )}
      </footer>
    </>
  )
}

function CurrentPage({ route, isStaff }: { route: Route; isStaff: boolean }) {
  // Shown on the page on which the visitor is then, until they leave it.
  const [added, setAdded] = useState<{ pet: Pet; hash: string }>()
  if (added && added.hash !== location.hash) setAdded(undefined)

  return (
    <>
      <div className="said">
        {/* Always rendered: screen readers announce only changes inside it. */}
        <p role="status">{added && `${shorten(added.pet.name)} has been added.`}</p>
        {added && route.page !== 'add' && <a href={links.add(route.filter)}>Add another</a>}
      </div>
      <PageOf
        route={route}
        isStaff={isStaff}
        onAdded={(pet) => setAdded({ pet, hash: location.hash })}
      />
    </>
  )
}

interface PageProps {
  route: Route
  isStaff: boolean
  onAdded(pet: Pet): void
}

function PageOf({ route, isStaff, onAdded }: PageProps) {
  switch (route.page) {
    case 'catalogue':
      return <Catalogue filter={route.filter} mayAdd={isStaff} />
    case 'pet':
      return <PetPage key={String(route.id)} id={route.id} filter={route.filter} />
    case 'add':
      return <AddPet filter={route.filter} onAdded={onAdded} />
    case 'staff':
      return null // the form for the key replaces the page
    case 'unknown':
      return (
        <Page title="Nothing here">
          <Nothing>
            <p>This address leads nowhere.</p>
            <a className="button" href={links.catalogue()}>
              See our animals
            </a>
          </Nothing>
        </Page>
      )
  }
}
