//! Which server a client trusts: one whose certificate has a fingerprint, or one that an authority vouches for.

use crate::error::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// The SHA-256 of a server's certificate, 64 hexadecimal digits.
///
/// ```
/// use unitape_client::Fingerprint;
/// let fingerprint = Fingerprint::parse(&"5A:".repeat(31)).is_none();
/// assert!(fingerprint);
/// assert_eq!(Fingerprint::parse(&"5a".repeat(32)).unwrap().to_string(), "5a".repeat(32));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Reads 64 hexadecimal digits of either case, with or without colons between bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != ':').collect();
        let mut bytes = [0; 32];
        if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Returns the fingerprint of a certificate in DER.
    pub fn of_certificate(der: &[u8]) -> Self {
        Self(Sha256::digest(der).into())
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Which server is trusted.
#[derive(Clone, Debug)]
pub struct ServerTrust(ClientConfig);

impl ServerTrust {
    /// Trusts the server whose certificate has this fingerprint, whatever its name and its dates are.
    pub fn in_fingerprint(fingerprint: Fingerprint) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = FingerprintVerifier { fingerprint, provider: provider.clone() };
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3 is built in")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Self(config)
    }

    /// Trusts servers whose certificate, for the host that is asked for, one of the authorities in a PEM file has signed.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or has no certificate.
    pub fn in_authorities(path: &Path) -> Result<Self, Error> {
        let trust_error = |reason: String| Error::Trust(format!("{}: {reason}", path.display()));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| trust_error(e.to_string()))? {
            let certificate = certificate.map_err(|e| trust_error(e.to_string()))?;
            roots.add(certificate).map_err(|e| trust_error(e.to_string()))?;
        }
        if roots.is_empty() {
            return Err(trust_error("there is no certificate in it".to_owned()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3 is built in")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(config))
    }

    pub(crate) fn config(&self) -> ClientConfig {
        self.0.clone()
    }
}

/// Returns why a certificate was refused, if that is what broke a connection.
pub(crate) fn is_untrusted(error: &std::io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            Some("its certificate has another fingerprint".to_owned())
        }
        rustls::Error::InvalidCertificate(reason) => Some(format!("its certificate: {reason}")),
        _ => None,
    }
}

/// Accepts the one certificate.
#[derive(Debug)]
struct FingerprintVerifier {
    fingerprint: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for FingerprintVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if Fingerprint::of_certificate(certificate) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
